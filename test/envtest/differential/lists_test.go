package differential

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

func (g *generator) rawList() step {
	resource := pods
	if g.chance(0.4) {
		resource = g.resource()
	}
	query := url.Values{}
	if l := pick(g, "", "app=worker", "app in (other)", receipt.IDLabel, assignment.HoldersSelector("Deployment/a"), "app!=other"); l != "" {
		query.Set("labelSelector", l)
	}
	if resource == pods && g.chance(0.5) {
		query.Set("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed")
	} else if g.chance(0.3) {
		query.Set("fieldSelector", "metadata.name="+g.owner())
	}
	from := pick(g, "", "", "0", "known")
	if g.chance(0.5) {
		query.Set("limit", pick(g, "500", "1", "2", "3"))
	}
	match := ""
	if from == "known" {
		match = pick(g, "", "NotOlderThan")
	}
	return stepf(func(ctx context.Context, s *side) error {
		if err := s.fresh(ctx, resource); err != nil {
			return err
		}
		if err := s.ask(ctx, http.MethodGet, s.path(resource), s.from(query, from, match), "", nil); err != nil || from != "" || query.Get("limit") == "" {
			return err
		}
		return s.pages(ctx, resource, query)
	}, "list %s %v from %q %s, and all pages from \"\"", resource, query, from, match)
}

// pages notes what all pages of a list show together: where a page ends is the server's affair.
func (s *side) pages(ctx context.Context, resource string, query url.Values) error {
	query = maps.Clone(query)
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		return err
	}
	for {
		req, err := http.NewRequestWithContext(context.WithValue(ctx, quietly, true), http.MethodGet, s.host+s.path(resource)+"?"+query.Encode(), http.NoBody)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "application/json")
		resp, err := s.client.Do(req)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // it was read
		if err != nil {
			return err
		}
		var list struct {
			Metadata struct{ Continue string } `json:"metadata"`
			Items    []object                  `json:"items"`
		}
		if err := utiljson.Unmarshal(body, &list); err != nil {
			return err
		}
		if len(list.Items) > limit {
			s.notef("a page of %d objects", len(list.Items))
		}
		s.mu.Lock()
		views := make([]string, 0, len(list.Items))
		for _, o := range list.Items {
			s.seen(resource, o)
			views = append(views, s.view(resource, o, true))
		}
		s.mu.Unlock()
		for _, v := range views {
			s.notef("%d: page shows %s", resp.StatusCode, v)
		}
		if list.Metadata.Continue == "" {
			return nil
		}
		query.Set("continue", list.Metadata.Continue)
	}
}

// from returns the query with a resourceVersion: none, 0, or the newest that is known.
func (s *side) from(query url.Values, from, match string) url.Values {
	out := url.Values{}
	maps.Copy(out, query)
	switch from {
	case "":
	case "known":
		s.mu.Lock()
		defer s.mu.Unlock()
		out.Set("resourceVersion", "0")
		if len(s.revs) > 0 {
			out.Set("resourceVersion", strconv.FormatInt(s.revs[len(s.revs)-1], 10))
		}
		if match != "" {
			out.Set("resourceVersionMatch", match)
		}
	default:
		out.Set("resourceVersion", from)
	}
	return out
}
