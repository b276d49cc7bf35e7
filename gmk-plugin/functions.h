/*
 * The functions make gets: qk-sandbox and qk-key for users, the others for qk.mk.
 */
#ifndef QK_GMK_PLUGIN_FUNCTIONS_H
#define QK_GMK_PLUGIN_FUNCTIONS_H

void qk_functions_register(void);

#endif
