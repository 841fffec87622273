package manifests

import (
	"fmt"
	"regexp"
	"strings"
)

// Release is what files are written for.
type Release struct {
	Version string // of Slipway: v0.4.0
	Image   string // container image that holds the program
}

var seriesRE = regexp.MustCompile(`^v?(\d+)\.(\d+)`)

// series returns major and minor of a version.
func (r Release) series() (major, minor string, err error) {
	m := seriesRE.FindStringSubmatch(r.Version)
	if m == nil {
		return "", "", fmt.Errorf("%q is no version such as v0.4.0: clusterctl would refuse the files", r.Version)
	}
	return m[1], m[2], nil
}

// Files returns the files of a release by name: those of a clusterctl repository, and standalone.yaml, which is applied
// with kubectl. Names like ${THIS} in them are filled in by clusterctl generate, or by hand in standalone.yaml.
func Files(r Release) (map[string][]byte, error) {
	if r.Image == "" {
		return nil, fmt.Errorf("no container image is named; see docs/kinds.md")
	}
	major, minor, err := r.series()
	if err != nil {
		return nil, err
	}
	fill := strings.NewReplacer("@IMAGE@", r.Image, "@VERSION@", r.Version, "@MAJOR@", major, "@MINOR@", minor)
	out := map[string][]byte{}
	entries, err := tree.ReadDir("files")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := tree.ReadFile("files/" + e.Name())
		if err != nil {
			return nil, err
		}
		out[e.Name()] = []byte(fill.Replace(string(text)))
	}
	manager := out["manager.yaml"]
	delete(out, "manager.yaml")
	for name, c := range map[string]struct {
		profile Profile
		sets    string
	}{
		"infrastructure-components.yaml": {CAPI, "standalone,capi"},
		"standalone.yaml":                {Standalone, "standalone"},
	} {
		objs, err := Objects(c.profile)
		if err != nil {
			return nil, err
		}
		text, err := encode(objs)
		if err != nil {
			return nil, err
		}
		text = append(text, "---\n"...)
		out[name] = append(text, strings.ReplaceAll(string(manager), "@SETS@", c.sets)...)
	}
	return out, nil
}
