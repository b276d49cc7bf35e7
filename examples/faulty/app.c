#include "app.h"

#include <stdio.h>

int main(void)
{
	return printf("%s\n", APP_TITLE) < 0;
}
