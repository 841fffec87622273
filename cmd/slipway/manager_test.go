package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"slipway.dev/slipway/kubernetes/manifests"
)

// TestTheManagerTakesTheFlagsOfItsDeployment: what the manifests write into a cluster is what the program reads.
func TestTheManagerTakesTheFlagsOfItsDeployment(t *testing.T) {
	files, err := manifests.Files(manifests.Release{Version: "v0.1.0", Image: "registry.example/slipway:v0.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	for name, sets := range map[string][]string{"infrastructure-components.yaml": {"standalone", "capi"}, "standalone.yaml": {"standalone"}} {
		var d appsv1.Deployment
		for doc := range bytes.SplitSeq(files[name], []byte("\n---\n")) {
			if bytes.Contains(doc, []byte("\nkind: Deployment\n")) {
				if err := yaml.Unmarshal(doc, &d); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(d.Spec.Template.Spec.Containers) != 1 {
			t.Fatalf("%s has no Deployment of one container", name)
		}
		box := d.Spec.Template.Spec.Containers[0]
		args := append(slices.Clone(box.Command[1:]), box.Args...)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "$(SLIPWAY_SERVER)", "https://10.0.0.1:8443")
		}
		var c commandLine
		parser, err := newParser(&c, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(args); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m := c.Manager
		if !slices.Equal(m.Sets, sets) || m.Namespace != "" || m.WatchFilter != "" || !m.LeaderElect || m.HealthAddr != ":8081" ||
			c.Server != "https://10.0.0.1:8443" || c.TokenFile != "/etc/slipway/token" || c.CAFile != "/etc/slipway/ca.crt" {
			t.Errorf("%s: the manager is told %+v of server %q with token %q", name, m, c.Server, c.TokenFile)
		}
	}
}
