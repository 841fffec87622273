package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway.dev/slipway/cmd/slipway/doctor"
)

// TestTheDoctorSpeaksOfThisMachineAndOfTheSite puts together what the doctor has found itself and what the server says.
func TestTheDoctorSpeaksOfThisMachineAndOfTheSite(t *testing.T) {
	found := []doctor.Check{{Name: "data directory"}, {Name: "clock"}}
	for name, tc := range map[string]struct {
		said []doctor.Check
		want string
	}{
		"a server alone": {
			[]doctor.Check{{Name: "clock", Detail: "of the server"}, {Name: "instances"}}, "data directory, clock, instances",
		},
		"one of several": {
			[]doctor.Check{
				{Name: "clock", Instance: "b", IsHere: true},
				{Name: "engine", Instance: "b", IsHere: true},
				{Name: "instances"},
				{Name: "clock", Instance: "a"},
			}, "b data directory, b clock, b engine, instances",
		},
		"it does not answer": {[]doctor.Check{{Name: "server"}}, "data directory, clock, server"},
	} {
		var got []string
		for _, k := range together(append([]doctor.Check{}, found...), tc.said) {
			got = append(got, strings.TrimSpace(k.Instance+" "+k.Name))
		}
		if said := strings.Join(got, ", "); said != tc.want {
			t.Errorf("%s: %s, want %s", name, said, tc.want)
		}
	}
}

func TestTheDoctorReadsTheUsualFileWhenNoServerRuns(t *testing.T) {
	dir := t.TempDir()
	usual := filepath.Join(dir, "config.yaml")
	c := doctorCommand{DataDir: dir}
	if f := c.flags(usual); f.Config != "" {
		t.Errorf("without the file: %q", f.Config)
	}
	if err := os.WriteFile(usual, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := c.flags(usual); f.Config != usual || f.DataDir != dir {
		t.Errorf("with it: %+v", f)
	}
	if c.Interface = []string{"eth1"}; c.flags(usual).Config != "" {
		t.Error("the file wins over a flag")
	}
}
