package images

import (
	"path"
	"slices"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// giveSums gives files the sums of --sha256.
func (c *imageImport) giveSums(files []client.ImportFile) error {
	for _, text := range c.SHA256 {
		name, sum, isNamed := strings.Cut(text, "=")
		if !isNamed {
			name, sum = "", text
		}
		d, err := inventory.ParseDigest(sum)
		if err != nil {
			return cli.Usage("it has 64 hex digits: sha256sum FILE", "--sha256 %q is no SHA-256 sum", text)
		}
		n := slices.IndexFunc(files, func(f client.ImportFile) bool { return isNamed && path.Base(f.Source) == name })
		if !isNamed && len(files) == 1 {
			n = 0
		}
		if n < 0 {
			return cli.Usage("write --sha256 FILE=HEX with the name of a file as --kernel, --initrd, --rootfs, --iso or --disk gives it", "--sha256 %q belongs to no file, or to several", text)
		}
		files[n].SHA256 = d
	}
	return nil
}
