package tutorial

import (
	"errors"
	"fmt"
	"strings"
)

// step is something to run, and what it prints when all is as the page says. It is run once if that is empty.
type step struct {
	line    int // of the page, from 1
	script  string
	printed []string
}

// steps returns what a page has to run.
func steps(page string) ([]step, error) {
	var all []step
	fence := ""
	for i, text := range strings.Split(page, "\n") {
		if rest, ok := strings.CutPrefix(text, "```"); ok {
			if fence = rest; fence == "sh tutorial" {
				all = append(all, step{line: i + 2})
			}
			continue
		}
		command, isCommand := strings.CutPrefix(text, "$ ")
		switch {
		case fence == "sh tutorial":
			all[len(all)-1].script += text + "\n"
		case fence == "console tutorial" && isCommand:
			all = append(all, step{line: i + 1, script: command})
		case fence == "console tutorial" && len(all) > 0:
			last := &all[len(all)-1]
			last.printed = append(last.printed, text)
		case fence == "console tutorial":
			return nil, fmt.Errorf("line %d: a block must begin with a command: $ ", i+1)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the page has nothing to run: the fences must be exactly ```sh tutorial or ```console tutorial")
	}
	return all, nil
}
