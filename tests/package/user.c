/*
 * A user's program: succeeds if the header it was compiled with and the
 * library that it runs with are of one version. Prints that version.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <clconv/clconv.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    char header[32];
    snprintf(header, sizeof header, "%d.%d.%d", CLCONV_VERSION_MAJOR,
             CLCONV_VERSION_MINOR, CLCONV_VERSION_PATCH);
    clconv_desc desc;
    clconv_desc_init(&desc);
    puts(clconv_version());
    return desc.struct_size != sizeof desc ||
           strcmp(header, clconv_version()) != 0;
}
