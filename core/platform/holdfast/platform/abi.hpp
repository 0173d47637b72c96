// The real side of the seam, version 1: names of this side do not link with those of another.
#pragma once

#define HOLDFAST_ABI real_1
