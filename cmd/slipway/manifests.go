package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machine/manifests"
)

// releaseName is how clusterctl calls the directory of a release.
var releaseName = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// nextRelease is the release that a build without a tag leads to. Its version is nextRelease with -dev, so that it counts before
// the release and belongs to its series.
const nextRelease = "v0.1.0"

// versionOf is the version of this program: the tag that it was linked with, or what git describe has made of it. A build
// without a tag knows its commit at most.
func versionOf(linked string) string {
	switch {
	case releaseName.MatchString(linked):
		return linked
	case linked == "dev" || linked == "":
		return nextRelease + "-dev"
	}
	return nextRelease + "-dev+g" + notInVersion.ReplaceAllString(linked, "-")
}

var notInVersion = regexp.MustCompile(`[^0-9A-Za-z.-]`)

// releaseOf is the version that a repository is written for: clusterctl takes it from the name of the directory and
// refuses metadata of another series.
func releaseOf(dir, version string) string {
	if base := baseOf(dir); releaseName.MatchString(base) {
		return base
	}
	return version
}

func baseOf(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return filepath.Base(dir)
	}
	return filepath.Base(abs)
}

// manifestsCommand writes what Slipway puts into a cluster. It asks no server.
type manifestsCommand struct {
	Dir     string `help:"Write the files of a clusterctl repository, and standalone.yaml, into this directory." placeholder:"DIR"`
	Image   string `help:"Container image that holds this program, for --dir." placeholder:"IMAGE"`
	Profile string `enum:"standalone,capi" default:"capi" help:"Without --dir: standalone, or capi, which has what Cluster API needs as well."`
	// Namespace narrows what the account may do.
	Namespace []string `help:"Without --dir: only the account and its rights in this namespace (repeat), for attach --namespace; an administrator has installed the kinds." placeholder:"NAME"`
}

// Run writes YAML for kubectl apply, or files for clusterctl.
func (c *manifestsCommand) Run(s *session) error {
	if len(c.Namespace) > 0 && c.Dir != "" {
		return usage("the files of a repository are for a whole cluster", "--namespace and --dir exclude each other")
	}
	if c.Dir == "" {
		text, err := manifests.Text(manifests.Profile(c.Profile))
		if len(c.Namespace) > 0 {
			text, err = manifests.NamespacedText(manifests.Profile(c.Profile), c.Namespace)
		}
		if err != nil {
			return err
		}
		_, err = s.out.Write(text)
		return err
	}
	if c.Image == "" {
		return usage("such as --image registry.example.com/slipway:"+strings.SplitN(version, "+", 2)[0], "--dir needs the container image that the cluster runs the controllers from")
	}
	files, err := manifests.Files(manifests.Release{Version: releaseOf(c.Dir, version), Image: c.Image})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return inventory.Errorf(inventory.Invalid, "cannot write to %s: %v", c.Dir, err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(c.Dir, filepath.Base(name))
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, files[name]) {
			continue
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return inventory.Errorf(inventory.Invalid, "cannot write %s: %v", path, err)
		}
		s.say("%s written", path)
	}
	if !releaseName.MatchString(baseOf(c.Dir)) {
		s.say("clusterctl finds them in a directory with the name of a version only, such as --dir %s", filepath.Join(c.Dir, manifests.Provider, nextRelease))
	}
	return nil
}
