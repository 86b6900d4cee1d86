package prometheus_test

import (
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/source/prometheus"
	"github.com/idalloc/idalloc/autoscaler/internal/source/web"
)

const query = "sum by (partition) (rate(published_total[1m]))"

// source is a source whose server answers with this.
func source(t *testing.T, code int, body string) prometheus.Source {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/prom/api/v1/query" || r.FormValue("query") != query {
			t.Errorf("asked for %s", r.URL)
		}
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("authorized by %q", r.Header.Get("Authorization"))
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	address, err := web.Parse(server.URL + "/prom/")
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return prometheus.Source{
		Server: web.Server{URL: address, TokenFile: token, Client: server.Client()}, Query: query, Label: "partition", Prefix: "p",
		Now: func() time.Time { return time.Unix(7, 0) },
	}
}

func vector(series ...string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(series, ",") + `]}}`
}

func TestAVectorIsRead(t *testing.T) {
	s := source(t, http.StatusOK, vector(
		`{"metric":{"partition":"p0"},"value":[1795410733.518,"12.5"]}`,
		`{"metric":{"partition":"p11","job":"x"},"value":[1795410733.518,"0"]}`,
		`{"metric":{"partition":"p9999"},"value":[1795410733.518,"1"]}`,
		`{"metric":{"partition":"p99999999999999999999","a":"1"},"value":[1795410733.518,"1"]}`,
		`{"metric":{"partition":"p99999999999999999999","a":"2"},"value":[1795410733.518,"1"]}`,
		`{"metric":{"partition":"p2"},"value":[1795410733.518,"NaN"]}`,
	))
	r, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(r.Values[2]) { // the monitor refuses it
		t.Errorf("partition 2 has %g", r.Values[2])
	}
	delete(r.Values, 2)
	if want := map[int]float64{0: 12.5, 11: 0, 9999: 1, math.MaxInt: 1}; !maps.Equal(r.Values, want) || r.Totals || !r.At.Equal(time.Unix(7, 0)) {
		t.Errorf("%+v, want %v", r, want)
	}
}

func TestAnAnswerThatCannotBeUsedIsSaidWithoutShowingIt(t *testing.T) {
	for want, answer := range map[string]struct {
		code int
		body string
	}{
		"400 Bad Request":                   {http.StatusBadRequest, `{"status":"error","errorType":"bad_data","error":"s3cret"}`},
		"the query failed":                  {http.StatusOK, `{"status":"error","error":"s3cret"}`},
		"may lack something":                {http.StatusOK, `{"status":"success","warnings":["s3cret"],"data":{"resultType":"vector","result":[]}}`},
		"is no instant vector":              {http.StatusOK, `{"status":"success","data":{"resultType":"s3cret","result":[]}}`},
		`no label "partition"`:              {http.StatusOK, vector(`{"metric":{"queue":"s3cret"},"value":[1,"1"]}`)},
		`partition of series 1 of 1 is not`: {http.StatusOK, vector(`{"metric":{"partition":"s3cret0"},"value":[1,"1"]}`)},
		`series 2 of 2 has no label "partition", or an empty one`: {http.StatusOK, vector(`{"metric":{"partition":"p1"},"value":[1,"1"]}`, `{"metric":{"partition":""},"value":[1,"1"]}`)},
		`--prometheus-prefix`:           {http.StatusOK, vector(`{"metric":{"partition":"x"},"value":[1,"1"]}`)},
		`is not "p" with a number`:      {http.StatusOK, vector(`{"metric":{"partition":"p"},"value":[1,"1"]}`)},
		`"p" with a number behind it`:   {http.StatusOK, vector(`{"metric":{"partition":"p-1"},"value":[1,"1"]}`)},
		"value of partition 0 is no":    {http.StatusOK, vector(`{"metric":{"partition":"p0"},"value":[1,"s3cret"]}`)},
		"two series are of partition 0": {http.StatusOK, vector(`{"metric":{"partition":"p0","a":"1"},"value":[1,"1"]}`, `{"metric":{"partition":"p0","a":"2"},"value":[1,"1"]}`)},
		"not the JSON":                  {http.StatusOK, `<html>login</html>`},
		"no value":                      {http.StatusOK, vector(`{"metric":{"partition":"p0"},"value":[1,{}]}`)},
		"502 Bad Gateway":               {http.StatusBadGateway, ""},
	} {
		s := source(t, answer.code, answer.body)
		if _, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
