/* version.h -- the one place that says which lagen this is: major.minor.patch. Major changes when a
 * command line or a JSON schema stops to mean what it meant, minor when either can say more. */
#ifndef LG_VERSION_H
#define LG_VERSION_H

#define LG_VERSION "0.1.0"

#endif
