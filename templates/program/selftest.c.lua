%%template
/* placeholder */
