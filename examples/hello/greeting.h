#define GREETING "Hello, declared world"
