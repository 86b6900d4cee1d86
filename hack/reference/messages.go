package main

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	inspection "github.com/idalloc/idalloc/internal/inspect"
)

const (
	messagesDocument = "docs/messages.md"
	messagesIntro    = `# Messages

For people who read something of idalloc's and ask what it means: log messages, Events, errors, findings of ` + "`verify`" + ` and states. Each text stands in
the code, as a comment beside the message. This page is made from it by ` + "`go run ./hack/reference`" + `.
`
)

// A kind of message, and the word with which a comment about one begins.
const (
	logMessage   = "Log"
	eventMessage = "Event"
	errorMessage = "Error"
)

// message is what people see, what the code says about it, and the line of code below that.
type message struct{ text, means, do, code string }

// messagesPage returns the page about messages for the project in a directory.
func messagesPage(_ context.Context, root string) (string, error) {
	said, err := explained(root)
	if err != nil {
		return "", err
	}
	reasons, err := reasons(root, "pkg/allocator", "pkg/allocator/report", "controller/internal/reconciler")
	if err != nil {
		return "", err
	}
	if err := complete(eventMessage, reasons, said[eventMessage]); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(messagesIntro)
	for _, part := range []struct{ title, says, kind, head string }{
		{"Log messages", "At `--v=0`, the default, each line is something that an operator may act on.", logMessage, "message"},
		{"Events", "Events are on the workload. Those on a pod say so, and so do those that are Normal.", eventMessage, "reason"},
		{"Errors", "A command ends with one of these sentences on standard error. Names and numbers stand in place of `…`.", errorMessage, "sentence"},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s", part.title, part.says, tableOf(part.head, said[part.kind]))
	}
	b.WriteString(findings())
	for _, part := range []struct{ title, says, dir, of, head string }{
		{"States of slots", "The column STATE of `kubectl idalloc get`.", "internal/inspect", "State", "state"},
		{"States of partitions", "The column STATE of `kubectl idalloc get --partitions`.", "internal/inspect", "PartitionState", "state"},
		{"States of instances", "What a program reads of itself: `state` in files, over HTTP and in the log.", "pkg/identity", "State", "state"},
	} {
		values, err := enumerated(root, part.dir, part.of)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s", part.title, part.says, tableOf(part.head, values))
	}
	return b.String(), nil
}

// findings is the part about what verify finds.
func findings() string {
	rows := make([][]string, 0, 64)
	for _, s := range inspection.Sentences() {
		rows = append(rows, []string{code(s[0]), open.ReplaceAllString(s[1], "…")})
	}
	return "\n## Findings of verify\n\nIn JSON, a finding has this name as `kind`. operations.md has more on [lost nodes](operations.md#a-node-is-lost), " +
		"[rolling updates](operations.md#a-rolling-update-stands-still) and\n[what other programs undo](operations.md#something-undoes-what-the-pods-write).\n\n" +
		table([]string{"finding", "sentence"}, rows)
}

// open matches a word that verify fills in.
var open = regexp.MustCompile(`\{[a-z ]+\}`)

// tableOf returns messages as a table, in their order, each once.
func tableOf(head string, messages []message) string {
	rows := make([][]string, 0, len(messages))
	for _, m := range messages {
		rows = append(rows, []string{code(m.text), m.means, m.do})
	}
	return table([]string{head, "meaning", "what to do"}, rows)
}

// complete returns an error if a message of the code has no explanation.
func complete(kind string, inCode []string, said []message) error {
	for _, text := range inCode {
		if !slices.ContainsFunc(said, func(m message) bool { return m.text == text }) {
			return fmt.Errorf("nothing explains %q: put a comment directly above its line: // %s: what it means // Do: what to do", text, kind)
		}
	}
	return nil
}

// explained returns the messages below cmd, internal, pkg and controller with a comment in the line above that explains them, by kind and text. The
// autoscaler has a page of its own. Each message of the log at V(0) needs a comment.
func explained(root string) (map[string][]message, error) {
	paths, err := sources(root, "cmd", "internal", "pkg", "controller/cmd", "controller/internal")
	if err != nil {
		return nil, err
	}
	said, logged := map[string][]message{}, []string{}
	for _, path := range paths {
		if strings.Contains(path, "autoscale") {
			continue
		}
		code, err := os.ReadFile(path) //nolint:gosec // a file of the project
		if err != nil {
			return nil, err
		}
		lines, files := strings.Split(string(code), "\n"), token.NewFileSet()
		file, err := parser.ParseFile(files, path, code, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		literals := map[int][]string{} // by line
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := literal(n); ok {
				line := files.Position(n.Pos()).Line
				literals[line] = append(literals[line], text)
			}
			logged = append(logged, logs(n)...)
			return true
		})
		for _, group := range file.Comments {
			for _, kind := range []string{logMessage, eventMessage, errorMessage} {
				_, says, found := strings.Cut("\n"+group.Text(), "\n"+kind+": ")
				if !found {
					continue
				}
				end := files.Position(group.End())
				i := slices.IndexFunc(literals[end.Line+1], func(text string) bool { return text != "" && (kind != eventMessage || camel.MatchString(text)) })
				if i < 0 {
					return nil, fmt.Errorf("%s:%d: the comment stands above a line without a message", path, end.Line)
				}
				m := explain(verb.ReplaceAllString(literals[end.Line+1][i], "…"), says)
				m.code = lines[end.Line]
				said[kind] = append(said[kind], m)
			}
		}
	}
	for _, messages := range said {
		slices.SortFunc(messages, func(a, b message) int { return strings.Compare(a.text, b.text) })
	}
	return said, cmp.Or(complete(logMessage, logged, said[logMessage]), placed(said[eventMessage]))
}

// placed returns an error if an Event about a pod does not say so.
func placed(events []message) error {
	for _, m := range events {
		if aboutPod.MatchString(m.code) && !strings.HasPrefix(strings.TrimPrefix(m.means, "Normal: "), "on a pod") {
			return fmt.Errorf("the Event %s is about a pod: begin its comment with \"on a pod:\"", m.text)
		}
	}
	return nil
}

// aboutPod matches a line that writes an Event about a pod.
var aboutPod = regexp.MustCompile(`\baboutPod\(|\bAbout: o\.pod\b`)

// verb matches what fmt replaces.
var verb = regexp.MustCompile(`%[a-z]`)

// explain makes a message of its text and what a comment says.
func explain(text, comment string) message {
	means, do, _ := strings.Cut(strings.Join(strings.Fields(comment), " "), " Do: ")
	return message{text: strings.TrimRight(text, " ,;:"), means: strings.TrimSuffix(means, "."), do: strings.TrimSuffix(do, ".")}
}

func literal(n ast.Node) (string, bool) {
	l, ok := n.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// logs returns the message of a call that logs one at V(0).
func logs(n ast.Node) []string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	at := -1
	if ok { // Error has the error before the message
		at = slices.Index([]string{"Info", "Error"}, method.Sel.Name)
	}
	if at < 0 || at >= len(call.Args) {
		return nil
	}
	logger := ""
	switch x := method.X.(type) {
	case *ast.Ident:
		logger = x.Name
	case *ast.SelectorExpr:
		logger = x.Sel.Name
	}
	if !strings.EqualFold(logger, "log") {
		return nil
	}
	if text, ok := literal(call.Args[at]); ok {
		return []string{text}
	}
	return nil
}

// enumerated returns the constants of a type with what their comments say, in their order.
func enumerated(root, dir, of string) ([]message, error) {
	var all []message
	err := inspect(root, []string{dir}, func(_ string, n ast.Node) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != of {
			return
		}
		if text, ok := literal(spec.Values[0]); ok {
			comment := strings.TrimPrefix(strings.TrimPrefix(spec.Doc.Text(), spec.Names[0].Name), ":")
			all = append(all, explain(text, strings.TrimPrefix(strings.TrimSpace(comment), "means that ")))
		}
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no constants of type %s", dir, of)
	}
	return all, err
}
