/* The table that tablegen makes. */
struct unit {
	const char *name, *kind;
	double factor; /* to the base unit of its kind */
};

extern const struct unit unit_table[];
extern const int unit_count;
