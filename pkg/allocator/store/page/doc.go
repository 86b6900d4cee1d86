// Package page reads lists of the API server in pages of bounded size.
package page
