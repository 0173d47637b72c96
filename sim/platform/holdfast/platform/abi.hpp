// The simulated side of the seam, version 1: names of this side do not link with those of another.
#pragma once

#define HOLDFAST_ABI sim_1
