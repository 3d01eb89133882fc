// libfuse, the one version of its interface that all files here agree on.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse3/fuse_lowlevel.h>
