package admin_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/ropeline/ropeline/bench/must"
)

// TestTerraform makes the calls again that Terraform 1.11.4 made of each block of docs/api.md, to two nodes in turn: applied,
// planned without a change, changed, planned without one, and destroyed. What its provider looks at has to be as it was.
func TestTerraform(t *testing.T) {
	for _, file := range []string{"testdata/terraform-v4", "testdata/terraform-v5"} {
		block := "```terraform\n" + string(must.Do(os.ReadFile(file+".tf"))) + "```\n"
		is(t, "docs/api.md has the block of "+file, strings.Contains(apiPage(), block), true)
		b, ids := newBench(t), []string{}
		for call := range strings.Lines(string(must.Do(os.ReadFile(file + ".jsonl")))) {
			var of struct {
				Method, Path string
				Body, Result any
			}
			must.OK(json.Unmarshal([]byte(strings.NewReplacer(ids...).Replace(call)), &of))
			_, got := b.ask(of.Method, of.Path, of.Body)
			is(t, of.Method+" "+of.Path, shaped(got["result"], of.Result, &ids), of.Result)
		}
	}
}

// shaped returns what got has of the fields of another value. Ids are made at each run: those of both are added to ids.
func shaped(got, as any, ids *[]string) any {
	switch as := as.(type) {
	case tree:
		from, _ := got.(tree)
		all := tree{}
		for name, v := range as {
			if all[name] = shaped(from[name], v, ids); name == "id" && from[name] != nil {
				*ids = append(*ids, v.(string), from[name].(string))
				all[name] = v
			}
		}
		return all
	case []any:
		if from, _ := got.([]any); len(from) == len(as) {
			all := make([]any, len(as))
			for i := range as {
				all[i] = shaped(from[i], as[i], ids)
			}
			return all
		}
	}
	return got
}
