// The archetype: the third side of the seam. It offers the platform contract and nothing else, so core that leans
// on an accident of the other two sides does not compile here. Declarations only: nothing is ever linked with it.
#pragma once

#define HOLDFAST_ABI archetype_1
