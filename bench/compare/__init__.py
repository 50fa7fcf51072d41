"""The parts of compare_torch.py.

SPDX-License-Identifier: Apache-2.0
"""
