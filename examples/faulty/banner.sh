sed -n 's/.*"\(.*\)".*/This is version \1/p' version.h
