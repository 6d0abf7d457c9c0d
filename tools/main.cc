#include "tools/verbs.h"

int main(int argc, char** argv) {
  return muster::tools::verb_main(argc, argv);
}
