%%template
/* The twin of ${name} in plain C: the same text over lib/isa_plain.h. */
#include "plain/names.h"

${include(file, op)}
