package pages_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/placement"
)

const root = "../.."

// pages returns the text of each page, by its path below the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "bin", "node_modules"}, d.Name()):
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			all[path] = read(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // a file of the project
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fence   = regexp.MustCompile("(?s)\n```.*?\n```")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	marks   = regexp.MustCompile("[`*]|\\]\\([^)]*\\)")
)

// anchors returns the anchors of a page, as GitHub makes them.
func anchors(text string) []string {
	found := heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1)
	all := make([]string, 0, len(found))
	for _, m := range found {
		slug := notSlug.ReplaceAllString(strings.ToLower(marks.ReplaceAllString(m[1], "")), "")
		all = append(all, strings.ReplaceAll(slug, " ", "-"))
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	for page, text := range all {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			path := page
			if to != "" {
				path = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s: there is no %s", page, m[1])
			} else if anchor != "" && !slices.Contains(anchors(all[path]), anchor) {
				t.Errorf("%s: %s has no heading %s", page, path, anchor)
			}
		}
	}
}

// first returns the names in code font in the first cells of a section's table.
func first(t *testing.T, page, section string) []string {
	t.Helper()
	_, text, found := strings.Cut(read(t, page), "\n## "+section+"\n")
	if !found {
		t.Fatalf("%s has no section %s", page, section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var names []string
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(text, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			names = append(names, name[1])
		}
	}
	return names
}

// folders returns the folders below dirs with Go files whose names match, but not those of other modules.
func folders(t *testing.T, match string, modules bool, dirs ...string) []string {
	t.Helper()
	var all []string
	for _, dir := range dirs {
		err := fs.WalkDir(os.DirFS(root), dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if _, err := os.Stat(filepath.Join(root, path, "go.mod")); err == nil && !modules || d.Name() == "testdata" {
				return fs.SkipDir
			}
			if files, _ := filepath.Glob(filepath.Join(root, path, match)); len(files) > 0 {
				all = append(all, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// covered reports whether one of the names is the path, or a folder above it.
func covered(path string, names []string, above bool) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		folder, all := strings.CutSuffix(name, "/...")
		return path == folder || (all || above) && strings.HasPrefix(path, folder+"/")
	})
}

func TestArchitectureHasEachPackage(t *testing.T) {
	rows := first(t, "docs/architecture.md", "Packages")
	have := folders(t, "*.go", false, "pkg", "internal", "cmd")
	for _, path := range have {
		if !covered(path, rows, false) {
			t.Errorf("there is no row for the package %s", path)
		}
	}
	for _, row := range rows {
		if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(row, "/..."))); err != nil {
			t.Errorf("there is no package %s", row)
		}
	}
}

// Until there is a release, VERSION stands for its number, and a page names an image of it only as what a kustomization replaces.
func TestNoPageNamesWhatIsNotReleased(t *testing.T) {
	const explains = "`VERSION` stands for"
	if !strings.Contains(read(t, "README.md"), "Nothing is released") {
		return
	}
	version := regexp.MustCompile(`(?m)^appVersion: (\S+)$`).FindStringSubmatch(read(t, "charts/idalloc/Chart.yaml"))[1]
	replaced := regexp.MustCompile(`name: ghcr\.io/idalloc/[\w-]+(,|\n) *newName: `)
	for page, text := range pages(t) {
		for number, line := range strings.Split(replaced.ReplaceAllString(text, ""), "\n") {
			if strings.Contains(line, version) || strings.Contains(line, "ghcr.io/idalloc/") && !strings.HasSuffix(line, ":VERSION") {
				t.Errorf("%s:%d names what does not exist: %s", page, number+1, line)
			}
		}
		if strings.Contains(text, explains) != (page == "config/README.md") {
			t.Errorf("%s: config/README.md alone says what VERSION stands for", page)
		}
	}
}

// A page may name what Go programs may rely on in the way that one writes it in Go.
func TestThePagesNameGoThatThereIs(t *testing.T) {
	for page, text := range pages(t) {
		for _, m := range regexp.MustCompile("`(identity|numbers|placement)\\.([A-Z]\\w*)([({])").FindAllStringSubmatch(text, -1) {
			declares := map[string]string{"(": "\nfunc " + m[2] + "(", "{": "\ntype " + m[2] + " struct"}[m[3]]
			if !strings.Contains(read(t, "test/api/testdata/"+m[1]+".txt"), declares) {
				t.Errorf("%s: package %s does not have %s%s", page, m[1], m[2], m[3])
			}
		}
	}
}

func TestArchitectureHasEachSuite(t *testing.T) {
	rows := first(t, "docs/architecture.md", "Tests")
	for _, path := range folders(t, "*_test.go", true, "test", "examples", "autoscaler/test") {
		if !covered(path, rows, true) {
			t.Errorf("there is no row for the suite %s", path)
		}
	}
	for _, row := range rows {
		if _, err := os.Stat(filepath.Join(root, row)); err != nil {
			t.Errorf("there is no suite %s", row)
		}
	}
}

func TestArchitectureNamesTypesThatThereAre(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "pkg", "allocator", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range files {
		code.WriteString(read(t, strings.TrimPrefix(file, root+"/")))
	}
	for _, name := range first(t, "docs/architecture.md", "One pod's life")[1:] { // the head names the package
		if !strings.Contains(code.String(), "\ntype "+name+" struct") {
			t.Errorf("pkg/allocator has no type %s", name)
		}
	}
}

func TestArchitectureNamesFunctionsThatThereAre(t *testing.T) {
	for _, m := range regexp.MustCompile("`([a-z/]+\\.go):(\\w+)`").FindAllStringSubmatch(read(t, "docs/architecture.md"), -1) {
		if !regexp.MustCompile(`(?m)^func (\(\w+ \*?\w+\) )?` + m[2] + `\(`).MatchString(read(t, m[1])) {
			t.Errorf("%s has no function %s", m[1], m[2])
		}
	}
}

// The pages that people read from the beginning must stay short. Those that are made from code, the changes, and the record of bugs are only looked up.
func TestThePagesAreShort(t *testing.T) {
	const together = 39_250
	all, sum := pages(t), 0
	for page, text := range all {
		if !slices.Contains([]string{"CHANGELOG.md", "charts/idalloc/README.md", "docs/figures/found.md", "docs/messages.md", "docs/reference.md"}, page) {
			sum += len(strings.Fields(text))
		}
	}
	if sum > together {
		t.Errorf("all pages have %d words, and may have %d", sum, together)
	}
	for page, most := range map[string]int{"README.md": 1000, "docs/controller.md": 1600, "docs/operations.md": 4500, "docs/protocol.md": 3400} {
		if words := len(strings.Fields(all[page])); words > most {
			t.Errorf("%s has %d words, and may have %d", page, words, most)
		}
	}
}

func TestTheDecisionsAreListedAndShort(t *testing.T) {
	const most = 150
	list := read(t, "docs/decisions/README.md")
	for page, text := range pages(t) {
		if dir, name := filepath.Split(page); dir == "docs/decisions/" && name != "README.md" {
			title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
			_, title, _ = strings.Cut(title, ". ")
			if !strings.Contains(list, "["+title+"]("+name+")") {
				t.Errorf("the list lacks %s", name)
			}
			if words := len(strings.Fields(text)); words > most {
				t.Errorf("%s has %d words, and may have %d", name, words, most)
			}
		}
	}
}

// annotationDefaults returns what holds without each annotation, by its key.
func annotationDefaults() map[string]string {
	settle, _ := assignment.SettleAfter(nil)
	reuse, _ := assignment.ReuseAfter(nil)
	turns, _ := assignment.CountTurns(nil, 100)
	evict, _ := assignment.EvictLimit(nil, 100)
	wish := assignment.DecodeWish(nil)
	return map[string]string{
		assignment.SettleKey: settle.String(), assignment.ReuseKey: reuse.String(), assignment.TurnsKey: fmt.Sprintf("%d%%", turns), assignment.EvictKey: strconv.Itoa(evict),
		assignment.PartitionFailoverAfterKey: wish.FailoverAfter.String(), assignment.PartitionGiveBackAfterKey: wish.GiveBackAfter.String(),
	}
}

func TestThePagesHaveTheDefaultsOfAnnotations(t *testing.T) {
	said := regexp.MustCompile("(?m)^\\| `([a-z.]+/[a-z-]+)` \\|.*?the default is `([^`]+)`")
	all := annotationDefaults()
	for page, text := range pages(t) {
		found := 0
		for _, m := range said.FindAllStringSubmatch(text, -1) {
			found++
			if m[2] != all[m[1]] {
				t.Errorf("%s: the default of %s is %s, and not %s", page, m[1], all[m[1]], m[2])
			}
		}
		if page == "docs/contract.md" && found != len(all) {
			t.Errorf("%s has %d defaults of %d", page, found, len(all))
		}
	}
}

// A page gives the default of a flag as in `--stop-timeout` (10 s). The reference is made from the programs.
func TestThePagesHaveTheDefaultsOfFlags(t *testing.T) {
	all := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| (?:`-.`, )?`(--[a-z-]+)[^`]*` \\| [^|]* \\| `([^`]*)` \\|").FindAllStringSubmatch(read(t, "docs/reference.md"), -1) {
		all[m[1]] = append(all[m[1]], m[2])
	}
	units := strings.NewReplacer(" ", "", "min", "m", "`", "")
	found := 0
	for page, text := range pages(t) {
		for _, m := range regexp.MustCompile("`(--[a-z-]+)` \\(([0-9.]+ (?:ms|s|m|min|h)|`[^`]+`)[;)]").FindAllStringSubmatch(text, -1) {
			found++
			says := units.Replace(m[2])
			if d, err := time.ParseDuration(says); err == nil {
				says = d.String()
			}
			if !slices.Contains(all[m[1]], says) {
				t.Errorf("%s: the default of %s is %v, and not %s", page, m[1], all[m[1]], says)
			}
		}
	}
	if found == 0 {
		t.Error("no page has a default")
	}
}

func TestThePagesListTheStrategies(t *testing.T) {
	names := placement.Names()
	if rows := first(t, "docs/partitions.md", "Strategies"); !slices.Equal(rows, names) {
		t.Errorf("docs/partitions.md explains %q, want %q", rows, names)
	}
	last := len(names) - 1
	if list := "`" + strings.Join(names[:last], "`, `") + "` or `" + names[last] + "`"; !strings.Contains(strings.ReplaceAll(read(t, "docs/contract.md"), " (the default)", ""), list) {
		t.Errorf("docs/contract.md does not list %s", list)
	}
	for _, name := range names {
		if path := "pkg/placement/doc.go"; !strings.Contains(read(t, path), "\n//   - "+name+": ") {
			t.Errorf("%s does not explain %s", path, name)
		}
	}
}

func TestThePagesHaveTheDefaultOfFailoverAfter(t *testing.T) {
	said := regexp.MustCompile("(?:partition-failover-after`|[*]{2}failover-after[*]{2})[^#]*?[Tt]he default (?:is|of) `([^`]+)`")
	found := false
	for page, text := range pages(t) {
		for _, m := range said.FindAllStringSubmatch(text, -1) {
			found = true
			if m[1] != assignment.DefaultFailoverAfter.String() {
				t.Errorf("%s says %s, it is %s", page, m[1], assignment.DefaultFailoverAfter)
			}
		}
	}
	if !found {
		t.Error("no page says it")
	}
}

// inPage is the name of a file in code font, with its folder or without. inComment is one of a Go file: without a folder, it is in the comment's own.
var (
	inPage    = regexp.MustCompile("`([\\w./-]*\\w\\.(?:go|mod|yaml|tpl|sh|py|svg|csv|md))(?::\\w+)?`")
	inComment = regexp.MustCompile(`(?m)^\s*//.*?\b([\w./-]*\w\.go)\b`)
)

func TestPagesAndCommentsNameFilesThatThereAre(t *testing.T) {
	files, texts := []string{}, pages(t)
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, _ fs.DirEntry, err error) error {
		if files = append(files, "/"+path); strings.HasSuffix(path, ".go") {
			texts[path] = read(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for page, text := range texts {
		names, folder := inPage.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1), "/"
		if strings.HasSuffix(page, ".go") {
			names, folder = inComment.FindAllStringSubmatch(text, -1), "/"+filepath.Dir(page)+"/"
		}
		for _, m := range names {
			near := folder + m[1]
			if strings.Contains(m[1], "/") {
				near = "/" + m[1]
			}
			if !slices.ContainsFunc(files, func(path string) bool { return strings.HasSuffix(path, near) }) {
				t.Errorf("%s: there is no file %s", page, m[1])
			}
		}
	}
}

// A surge of numbered pods is what people compare, so the page keeps the links that show it.
func TestThePageSaysWhereASurgeHasGoneWrong(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "docs/should-i-use-this.md"), "\n## Where idalloc is better\n")
	for _, link := range []string{"kubernetes-sigs/kueue/issues/8769", "kubernetes-sigs/lws/pull/779", "volcano-sh/kthena/issues/1743"} {
		if !strings.Contains(text, "](https://github.com/"+link+")") {
			t.Errorf("docs/should-i-use-this.md does not link to %s", link)
		}
	}
}

func TestThePageHasEachUseOfAnID(t *testing.T) {
	manifests, err := filepath.Glob(filepath.Join(root, "config", "examples", "uses", "*.yaml"))
	if err != nil || len(manifests) == 0 {
		t.Fatal(manifests, err)
	}
	for _, path := range manifests {
		if !strings.Contains(read(t, "docs/uses.md"), "(../config/examples/uses/"+filepath.Base(path)+")") {
			t.Errorf("docs/uses.md lacks %s", filepath.Base(path))
		}
	}
}
