/*
 * Channels of a group in a packed copy: whole pieces of 16 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
int padded(int channels)
{
    return (channels + 7) / 8 * 8;
}
