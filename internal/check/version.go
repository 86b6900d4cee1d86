package check

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// ServerVersion returns the version of the API server. The discovery client would double the size of this program.
func ServerVersion(ctx context.Context, config *rest.Config) (string, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, request.Timeout)
	defer cancel()
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("version").String(), nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(asked)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("it answers %s", answer.Status)
	}
	var info apiversion.Info
	err = json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&info)
	return info.GitVersion, err
}
