// Package pages compares the Markdown pages with the code and with each other: links, the tables of architecture.md, the list of decisions, and
// how long pages may be.
package pages
