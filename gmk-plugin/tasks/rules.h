/*
 * Rules for tasks: `app\:build: lib\:build ; $(qk-task 12)`, each evaluated with the place of its
 * target in project.json, so that make's messages name it; and goals for all projects' targets of
 * one name. All are phony: qk, not make, knows whether something has changed.
 */
#ifndef QK_GMK_PLUGIN_TASKS_RULES_H
#define QK_GMK_PLUGIN_TASKS_RULES_H

/* Plans the graphs for the goals make was given and evaluates everything. Ends make on an error. */
void qk_rules_make(void);

#endif
