"""power_off.py DIRECTORY : ends the ext4 file system of DIRECTORY as a power loss does: from now on nothing reaches
its disk, the journal's buffered part included (EXT4_IOC_SHUTDOWN, NOLOGFLUSH). Needs root."""

import fcntl
import os
import struct
import sys

EXT4_IOC_SHUTDOWN = 0x8004587D
NOLOGFLUSH = 2

fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), EXT4_IOC_SHUTDOWN, struct.pack("I", NOLOGFLUSH))
