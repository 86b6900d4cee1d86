package main

import (
	"maps"
	"slices"
	"strings"
)

// seen holds the rows of the last output, by their first cell.
type seen map[string]string

// differ returns the indices of rows that are new or have changed, and the first cells of rows that are gone, in order. It remembers the rows.
func (s seen) differ(rows [][]string) (fresh []int, gone []string) {
	now := seen{}
	for k, row := range rows {
		now[row[0]] = strings.Join(row, "\t")
		if s[row[0]] != now[row[0]] {
			fresh = append(fresh, k)
		}
	}
	for key := range s {
		if _, is := now[key]; !is {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	clear(s)
	maps.Copy(s, now)
	return fresh, gone
}

// keyed returns the rows with a unique cell put first. Rows of paused pods name no partitions.
func keyed(rows [][]string) [][]string {
	all := make([][]string, 0, len(rows))
	for _, row := range rows {
		key := row[0]
		if key == "-" {
			key = "id " + row[1]
		}
		all = append(all, append([]string{key}, row...))
	}
	return all
}
