#define APP_TITLE "A program with an undeclared header"
