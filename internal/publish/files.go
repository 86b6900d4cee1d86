package publish

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/idalloc/idalloc/pkg/identity"
)

// Published names. Programs rely on them.
const (
	fileID    = "id"
	fileCount = "count"
	fileToken = "token"
	fileState = "state"
	fileJSON  = identity.FileName
	fileEnv   = "env"
	// filePartitions is published only if the process works on partitions.
	filePartitions = "partitions"
)

// names returns the names to publish for an identity, in the order in which link creates them.
func names(id identity.Identity) []string {
	names := []string{fileID, fileCount, fileToken, fileState, fileJSON, fileEnv}
	if id.Partitions.Enabled() {
		names = append(names, filePartitions)
	}
	return names
}

type file struct{ name, data string }

// render returns the files of one generation. While there is no id, fileID and filePartitions are missing. Their links then dangle, so "test -e id" and open
// fail, and no program reads an id that the pod does not hold. The partitions in filePartitions are those on which work may continue or begin.
func render(id identity.Identity) ([]file, error) {
	body, err := json.Marshal(id)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	files := []file{
		{fileState, string(id.State) + "\n"},
		{fileCount, strconv.Itoa(id.Count) + "\n"},
		{fileToken, strconv.FormatInt(id.Token, 10) + "\n"},
		{fileJSON, string(body) + "\n"},
		{fileEnv, renderEnv(id)},
	}
	if id.Assigned() {
		files = append(files, file{fileID, strconv.Itoa(id.ID) + "\n"})
		if id.Partitions.Enabled() {
			files = append(files, file{filePartitions, id.Partitions.Owned().String() + "\n"})
		}
	}
	return files, nil
}

// renderEnv returns lines for a shell and for the kubelet's fileKeyRef, which accepts only values in single quotes. No value contains a quote.
func renderEnv(id identity.Identity) string {
	var b strings.Builder
	add := func(name string, value any) { fmt.Fprintf(&b, "%s='%v'\n", name, value) }
	if id.Assigned() {
		add("IDALLOC_ID", id.ID)
	}
	add("IDALLOC_COUNT", id.Count)
	if id.Assigned() {
		add("IDALLOC_TOKEN", id.Token)
	}
	if id.Assigned() && id.Partitions.Enabled() {
		add("IDALLOC_PARTITIONS", id.Partitions.Owned())
	}
	add("IDALLOC_STATE", id.State)
	return b.String()
}
