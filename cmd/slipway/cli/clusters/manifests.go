package clusters

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/manifests"
)

// ManifestsCommand writes what Slipway puts into a cluster. It asks no server.
type ManifestsCommand struct {
	Dir     string `help:"Write the files of a clusterctl repository, and standalone.yaml, into this directory." placeholder:"DIR"`
	Image   string `help:"Container image that holds this program, for --dir." placeholder:"IMAGE"`
	Profile string `enum:"standalone,capi" default:"capi" help:"Without --dir: standalone, or capi, which has what Cluster API needs as well."`
	// Namespace narrows what the account may do.
	Namespace []string `help:"Without --dir: only the account and its rights in this namespace (repeat), for attach --namespace; an administrator has installed the kinds." placeholder:"NAME"`
}

// Run writes YAML for kubectl apply, or files for clusterctl.
func (c *ManifestsCommand) Run(s *cli.Session) error {
	if len(c.Namespace) > 0 && c.Dir != "" {
		return cli.Usage("the files of a repository are for a whole cluster", "--namespace and --dir exclude each other")
	}
	if c.Dir == "" {
		text, err := manifests.Text(manifests.Profile(c.Profile))
		if len(c.Namespace) > 0 {
			text, err = manifests.NamespacedText(manifests.Profile(c.Profile), c.Namespace)
		}
		if err != nil {
			return err
		}
		_, err = s.Out.Write(text)
		return err
	}
	if c.Image == "" {
		return cli.Usage("such as --image registry.example.com/slipway:"+strings.SplitN(cli.Version, "+", 2)[0], "--dir needs the container image that the cluster runs the controllers from")
	}
	files, err := manifests.Files(manifests.Release{Version: cli.ReleaseOf(c.Dir, cli.Version), Image: c.Image})
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
		s.Say("%s written", path)
	}
	if !cli.ReleaseName.MatchString(cli.BaseOf(c.Dir)) {
		s.Say("clusterctl finds them in a directory with the name of a version only, such as --dir %s", filepath.Join(c.Dir, manifests.Provider, cli.NextRelease))
	}
	return nil
}
