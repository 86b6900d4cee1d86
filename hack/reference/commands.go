package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// commands describes the programs of the project by what they say themselves to --help.
func commands(ctx context.Context, root string) (string, error) {
	dir, err := os.MkdirTemp("", "idalloc-reference-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, module := range []string{root, filepath.Join(root, "autoscaler"), filepath.Join(root, "controller")} {
		build := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), "./cmd/...") //nolint:gosec // the project's programs
		build.Dir = module
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
	}
	programs, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("## Commands\n\nA flag on the command line wins over its environment variable. `idalloc options` lists kubectl's flags, which name the API server.\n")
	for _, p := range programs {
		if err := describe(ctx, &b, filepath.Join(dir, p.Name()), ""); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// describe writes what a program or one of its commands has, and then the commands below it.
// prefix is that of the environment variables that the program's help names.
func describe(ctx context.Context, b *strings.Builder, program, prefix string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, append(args, "--help")...) //nolint:gosec // the project's programs
	// A default may come from the environment in which this runs.
	cmd.Env = []string{"HOME=/nonexistent"}
	help, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, help)
	}
	if err := narrow(string(help)); err != nil {
		return fmt.Errorf("%s %s --help: %w", program, strings.Join(args, " "), err)
	}
	h := parse(string(help))
	if len(args) == 0 && slices.Contains(h.commands, "options") { // its help leaves out the flags that all commands have
		options := exec.CommandContext(ctx, program, "options")
		options.Env = cmd.Env
		text, err := options.Output()
		if err != nil {
			return fmt.Errorf("%s options: %w", program, err)
		}
		if err := narrow(string(text)); err != nil {
			return fmt.Errorf("%s options: %w", program, err)
		}
		h.flags = append(h.flags, parse(string(text)).flags...)
	}
	if m := rule.FindStringSubmatch(string(help)); m != nil && len(args) == 0 {
		prefix = strings.TrimSuffix(m[2], twin(m[1]))
	}
	for _, row := range h.flags {
		if long := flagName.FindStringSubmatch(row[0]); row[1] == "" && prefix != "" && long != nil {
			row[1] = code(prefix + twin(long[1]))
		}
	}
	name := strings.Join(append([]string{filepath.Base(program)}, args...), " ")
	if len(h.flags) > 0 {
		fmt.Fprintf(b, "\n### %s\n\n", name)
		if len(h.commands) > 0 {
			b.WriteString("All commands have these flags.\n\n")
		}
		b.WriteString(table([]string{"flag", "variable", "default", "meaning"}, h.flags))
	}
	for _, sub := range h.commands {
		if sub == "help" || sub == "completion" || sub == "options" {
			continue
		}
		if err := describe(ctx, b, program, prefix, append(slices.Clip(args), sub)...); err != nil {
			return err
		}
	}
	return nil
}

// helped is what a help text lists.
type helped struct {
	commands []string
	flags    [][]string
}

// parse reads the help of one command. Flags that it has from the command above it are that one's.
func parse(help string) helped {
	var h helped
	section := ""
	for line := range strings.Lines(folded.ReplaceAllString(help, " ")) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line != "" && !strings.HasPrefix(line, " "):
			section = line
		case strings.HasSuffix(section, "ommands:"):
			if words := strings.Fields(line); len(words) > 0 {
				h.commands = append(h.commands, words[0])
			}
		case section == "Flags:" || strings.HasSuffix(section, " these flags:"):
			if f := flagLine.FindStringSubmatch(line); len(f) > 0 && f[2] != "help" && f[2] != "version" {
				h.flags = append(h.flags, flagRow(f[1], f[2], f[3], f[4]))
			}
		}
	}
	return h
}

var (
	// rule matches the sentence of a program's help that names the variable of a flag.
	rule     = regexp.MustCompile(`--([a-z-]+) is\s+([A-Z_]+)`)
	flagName = regexp.MustCompile(`--([a-z][\w-]*)`)
	// folded is between two lines of the text of one flag.
	folded   = regexp.MustCompile(`\n {16,}`)
	flagLine = regexp.MustCompile(`^ +(?:-(\w), )?--([a-z][\w-]*)(?: (\w+))? {2,}(.*)$`)
	ending   = regexp.MustCompile(` \(default (.*)\)$`)
	bracket  = regexp.MustCompile(` \[([A-Z][A-Z_]{3,}[^\]]*)\]`)
	variable = regexp.MustCompile(`[A-Z][A-Z_]{3,}`)
)

// twin returns the end of the name of a flag's variable.
func twin(flag string) string { return "_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) }

// narrow returns an error for a line of help that a terminal of 80 columns breaks.
func narrow(help string) error {
	for line := range strings.Lines(help) {
		if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > 80 {
			return fmt.Errorf("a line has more than 80 characters: %s", line)
		}
	}
	return nil
}

func flagRow(short, long, kind, usage string) []string {
	flag, value, names := code(strings.TrimSpace("--"+long+" "+kind)), "", []string{}
	if short != "" && short != long {
		flag = code("-"+short) + ", " + flag
	}
	if m := ending.FindStringSubmatch(usage); m != nil {
		value, usage = code(strings.Trim(m[1], `"`)), strings.TrimSuffix(usage, m[0])
	}
	if m := bracket.FindStringSubmatch(usage); m != nil {
		for _, name := range variable.FindAllString(m[1], -1) {
			names = append(names, code(name))
		}
		usage = strings.Replace(usage, m[0], "", 1)
	}
	return []string{flag, strings.Join(names, ", "), value, usage}
}
