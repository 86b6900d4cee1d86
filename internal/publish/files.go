package publish

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/idalloc/idalloc/pkg/identity"
)

// The published names. They are a contract with the workload.
const (
	fileID    = "id"
	fileCount = "count"
	fileEpoch = "epoch"
	fileState = "state"
	fileJSON  = identity.FileName
	fileEnv   = "env"
)

// names returns what is linked at the first Publish, in this order.
func names() []string {
	return []string{fileID, fileCount, fileEpoch, fileState, fileJSON, fileEnv}
}

type file struct{ name, data string }

// render returns the files of one generation. fileID is missing while there is no id: its link
// dangles then, so that "test -e id" and open fail instead of giving an id that is not held.
func render(id identity.Identity) ([]file, error) {
	body, err := json.Marshal(id)
	if err != nil {
		return nil, fmt.Errorf("idalloc: identity: %w", err)
	}
	files := []file{
		{fileState, string(id.State) + "\n"},
		{fileCount, strconv.Itoa(id.Count) + "\n"},
		{fileEpoch, strconv.FormatInt(id.Epoch, 10) + "\n"},
		{fileJSON, string(body) + "\n"},
		{fileEnv, renderEnv(id)},
	}
	if id.Assigned() {
		files = append(files, file{fileID, strconv.Itoa(id.ID) + "\n"})
	}
	return files, nil
}

// renderEnv returns lines for "source" and for "docker run --env-file": no quotes, no "export".
func renderEnv(id identity.Identity) string {
	var b strings.Builder
	if id.Assigned() {
		fmt.Fprintf(&b, "IDALLOC_ID=%d\n", id.ID)
	}
	fmt.Fprintf(&b, "IDALLOC_COUNT=%d\n", id.Count)
	if id.Assigned() {
		fmt.Fprintf(&b, "IDALLOC_EPOCH=%d\n", id.Epoch)
	}
	fmt.Fprintf(&b, "IDALLOC_STATE=%s\n", id.State)
	return b.String()
}
