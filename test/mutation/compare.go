package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
)

// sameCode reports whether the compiler makes the same of the mutant as of the package as it is.
func (j *judge) sameCode(ctx context.Context, m *mutant, overlay string) (bool, error) {
	if m.generic {
		return false, nil
	}
	j.compiling.Lock()
	original := j.compiled[m.pkg]
	if original == nil {
		var err error
		if original, err = j.compile(ctx, m.pkg); err != nil {
			j.compiling.Unlock()
			return false, err
		}
		if j.compiled == nil {
			j.compiled = map[string]map[string]string{}
		}
		j.compiled[m.pkg] = original
	}
	j.compiling.Unlock()
	changed, err := j.compile(ctx, m.pkg, "-overlay", overlay)
	return err == nil && maps.Equal(original, changed), err
}

// compile returns a hash of each symbol of a package, by its name, from the compiler's listing.
func (j *judge) compile(ctx context.Context, pkg string, args ...string) (map[string]string, error) {
	// A program would be written into the tree otherwise.
	build := append(append([]string{"build", "-trimpath", "-gcflags=-S", "-o", os.DevNull}, args...), pkg)
	out, err := j.command(ctx, build...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(build, " "), err, out)
	}
	return symbols(out), nil
}

// symbols splits a listing of the compiler into what it makes: bytes, and what they refer to. Lines of the source do not count.
func symbols(listing []byte) map[string]string {
	instruction := regexp.MustCompile(`^\t0x[0-9a-f]+ \d+ \(`)
	out := map[string]string{}
	name := ""
	body := sha256.New()
	end := func() {
		if name != "" {
			out[name] = string(body.Sum(nil))
		}
		body.Reset()
	}
	lines := bufio.NewScanner(bytes.NewReader(listing))
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "" || line[0] == '#' || instruction.MatchString(line):
		case line[0] != '\t':
			end()
			name = line
		default:
			body.Write(append(lines.Bytes(), '\n'))
		}
	}
	end()
	return out
}
