package inspect

import (
	"fmt"
	"strings"
)

// Remarks returns sentences about what the rows of the table do not show.
func (v View) Remarks() []string {
	remarks := warned(v.Problems)
	if v.Finished {
		remarks = append(remarks, v.Owner+" has finished; the ids of pods that have ended are not shown")
	}
	if len(v.Waiting) > 0 {
		names := make([]string, 0, len(v.Waiting))
		for _, name := range v.Waiting {
			if by := v.assign[name]; by != "" {
				name += " (" + by + ")"
			}
			names = append(names, name)
		}
		remarks = append(remarks, fmt.Sprintf("%d pods have no slot: %s", len(names), strings.Join(names, ", ")))
	}
	if v.Unlisted > 0 {
		remarks = append(remarks, fmt.Sprintf("%d more ids are free and not shown", v.Unlisted))
	}
	return remarks
}

// Remarks returns sentences about what the rows of the table do not show.
func (v PartitionView) Remarks() []string { return warned(v.Problems) }

func warned(problems []string) []string {
	remarks := make([]string, 0, len(problems)+2)
	for _, p := range problems {
		remarks = append(remarks, "warning: "+p)
	}
	return remarks
}
