// A program outside the tree: public headers, the installed library, nothing else.
#include <holdfast/base/error.hpp>

#include <cstdio>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

int main() {
  std::printf("linked with side %s\n", TEXT(HOLDFAST_ABI));
  return 0;
}
