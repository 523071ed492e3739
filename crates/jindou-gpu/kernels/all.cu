// Every kernel, as one translation unit: what build.sh and the shim compile.
#include "start.cu"
#include "filter.cu"
#include "measure.cu"
#include "expand.cu"
#include "fold.cu"
#include "operators.cu"
#include "group.cu"
#include "select.cu"
