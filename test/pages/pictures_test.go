package pages_test

import (
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"testing"
)

// The picture on the page of metrics shows the row of the controller, in the dashboard's order.
func TestThePictureHasThePanelsOfTheDashboard(t *testing.T) {
	const picture = "docs/figures/controller-row.svg"
	var dashboard struct {
		Panels []struct {
			Type  string `json:"type"`
			Title string `json:"title"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(read(t, "config/grafana/idalloc.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	heads := regexp.MustCompile(`<text class="head"[^>]*>([^<]*)</text>`).FindAllStringSubmatch(read(t, picture), -1)
	drawn := make([]string, 0, len(heads))
	var has []string
	for _, m := range heads {
		drawn = append(drawn, html.UnescapeString(m[1]))
	}
	if len(drawn) == 0 {
		t.Fatalf("%s has no titles", picture)
	}
	for _, p := range dashboard.Panels {
		if p.Title == drawn[0] {
			has = []string{p.Title}
		} else if len(has) > 0 {
			if p.Type == "row" {
				break
			}
			has = append(has, p.Title)
		}
	}
	if !slices.Equal(drawn, has) {
		t.Errorf("%s has the titles %q, and the dashboard %q", picture, drawn, has)
	}
}
