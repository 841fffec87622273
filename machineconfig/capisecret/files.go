package capisecret

import (
	"encoding/base64"
	"path"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

// joinFolder is where kubeadm's configuration stands, with its token or the cluster's keys.
const joinFolder = "/run/kubeadm/"

// files takes over write_files. A path that is written twice holds what the last one says, as with cloud-init.
func files(cc *cloudConfig, c *machineconfig.Config) error {
	a := c.Activation
	at := map[string]int{} // path to its place in the list
	held := map[string][]byte{}
	budget := maxExpanded
	for _, w := range cc.WriteFiles {
		f, err := fileOf(w)
		if err != nil {
			return err
		}
		data, err := decode(w, &budget)
		if err != nil {
			return err
		}
		i, again := at[f.Path]
		if !again {
			i = len(a.Files)
			at[f.Path] = i
			a.Files = append(a.Files, f)
		}
		if again && w.Append {
			if budget -= len(held[f.Path]); budget < 0 {
				return refuse("write it in one piece", "writes %s in too many pieces", w.Path)
			}
			data = append(held[f.Path], data...)
			f.Append = a.Files[i].Append
		}
		held[f.Path] = data
		f.Content = content(data)
		a.Files[i] = f
		if !again && strings.HasPrefix(f.Path, joinFolder) {
			a.Cleanup = append(a.Cleanup, f.Path)
		}
	}
	return nil
}

// fileOf returns a file without its content.
func fileOf(w writeFile) (machineconfig.File, error) {
	if !path.IsAbs(w.Path) || path.Clean(w.Path) != w.Path || w.Path == "/" {
		return machineconfig.File{}, refuse("write the whole path, without .. or a slash at its end",
			"writes a file at %q, which is no absolute path", inventory.Clean(w.Path, 120))
	}
	f := machineconfig.File{Path: w.Path, Append: w.Append}
	f.Owner, f.Group, _ = strings.Cut(w.Owner, ":")
	if w.Permissions != "" {
		if err := f.Mode.UnmarshalText([]byte(w.Permissions)); err != nil {
			return f, refuse("write three or four octal digits, such as '0640'", "writes %s with permissions that are none", w.Path)
		}
	}
	return f, nil
}

// decode returns what a file holds. The names of encodings are those of cloud-init.
func decode(w writeFile, budget *int) ([]byte, error) {
	data := []byte(w.Content)
	const hint = "the encodings are base64, gzip+base64 and gzip"
	isBase64, isGzip := false, false
	switch strings.ToLower(w.Encoding) {
	case "", "text/plain":
	case "b64", "base64":
		isBase64 = true
	case "gz", "gzip":
		isGzip = true
	case "gz+b64", "gzip+b64", "gz+base64", "gzip+base64":
		isBase64, isGzip = true, true
	default:
		return nil, refuse(hint, "writes %s in an encoding that is not known", w.Path)
	}
	var err error
	if isBase64 {
		if data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(w.Content), "")); err != nil {
			return nil, refuse(hint, "writes %s in base64 that cannot be decoded", w.Path)
		}
	}
	if isGzip {
		if data, err = gunzip(data, budget); err != nil {
			return nil, refuse(hint, "writes %s compressed, and it cannot be expanded: %s", w.Path, err)
		}
	}
	return data, nil
}
