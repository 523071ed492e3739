// All kernels as one translation unit, which build.sh and the shim compile.
#include "start.cu"
#include "filter.cu"
#include "measure.cu"
#include "expand.cu"
#include "fold.cu"
#include "operators.cu"
#include "group.cu"
#include "select.cu"
