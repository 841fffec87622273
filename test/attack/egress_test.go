package attack_test

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// TestAnImportReachesNothingOfTheServers lets an operator import from addresses that only the server reaches: all answers
// are one and the same, so that they tell neither what listens there nor what it is.
func TestAnImportReachesNothingOfTheServers(t *testing.T) {
	a := victim(t)
	ctx := t.Context()
	operator := as(a, "operator", inventory.Grant{Role: inventory.Operator})
	answers := map[string][]string{}
	for _, at := range []string{
		"http://127.0.0.1:8067/", "http://127.0.0.1:1/", "http://169.254.169.254/", "http://[::ffff:127.0.0.1]/",
		"http://[::ffff:127.0.0.1]:8067/",
		"http://10.77.0.1/", "http://localhost:8067/", "http://0.0.0.0:8067/", "http://[::1]:8067/", "http://2130706433:8067/",
	} {
		r := client.ImportRequest{Name: "stolen", Files: []client.ImportFile{
			{Role: inventory.RoleKernel, Name: "linux", Source: at + "linux"},
			{Role: inventory.RoleInitrd, Name: "initrd.gz", Source: at + "initrd.gz"},
		}}
		text := ""
		job, err := operator.Import(ctx, r)
		if err != nil {
			text = err.Error()
		} else {
			for j, err := range operator.WatchJob(ctx, job.ID) {
				if err != nil {
					t.Fatal(err)
				}
				job = j
			}
			if job.State != "failed" {
				t.Errorf("the import from %s is %s", at, job.State)
			}
			text = job.Error + " | " + job.Hint
		}
		text = strings.ReplaceAll(text, at, "ADDRESS/") // the operator knows it already
		answers[text] = append(answers[text], at)
	}
	if len(answers) != 1 {
		t.Errorf("the answers tell addresses apart: %q", answers)
	}
	for text := range answers {
		t.Logf("the operator reads: %s", text)
	}
	if files, err := a.API.Artefacts.List(ctx, client.Query{}); err != nil || len(files.Items) != 0 {
		t.Errorf("files of the server were imported: %+v, %v", files.Items, err)
	}
	if _, err := a.API.Images.Get(ctx, "stolen"); err == nil {
		t.Error("an image was made of them")
	}
	a.ImportLive() // an admin's import from the server's own files still works
	boots(a, 8)
}
