/* What this library was built from: see abi.py. The loader finds it in the file's bytes, before any of
 * its code is run. */

#include "common.h"

#ifndef REGARD_ABI
#error "REGARD_ABI is not defined: build with setup.py"
#endif

const char regard_abi[] = "regard-abi:" REGARD_ABI;
