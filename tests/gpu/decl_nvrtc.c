/* decl_nvrtc.c -- compared by the compiler: gen/nvrtc.def against the toolkit's nvrtc.h. Not
 * linked; see test_driver_decl.py. */
#include <nvrtc.h>

#define lg_nvrtc_program nvrtcProgram
#define LG_NVRTC(name, parameters)                                                                 \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&name), nvrtcResult(*) parameters),     \
                   #name " differs from nvrtc.h");
#include "nvrtc.def"

_Static_assert(sizeof(nvrtcResult) == sizeof(unsigned), "nvrtcResult is no unsigned");
_Static_assert(NVRTC_SUCCESS == 0, "success is not 0");
