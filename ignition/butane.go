package ignition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	butanelib "github.com/coreos/ignition/v2/butane/config"
	"github.com/coreos/ignition/v2/butane/config/common"
	"github.com/coreos/vcontext/report"
)

// The types below are the part of Butane's schema that the neutral model needs. They are written as JSON, which YAML
// reads; all variants and versions have these fields, but for those that editions and capabilities keep away.
type butane struct {
	Variant  string    `json:"variant"`
	Version  string    `json:"version"`
	Metadata *metadata `json:"metadata,omitempty"` // openshift only
	Ignition struct {
		Config struct {
			Merge []resource `json:"merge,omitempty"`
		} `json:"config,omitzero"`
		Security struct {
			TLS struct {
				CAs []resource `json:"certificate_authorities,omitempty"`
			} `json:"tls,omitzero"`
		} `json:"security,omitzero"`
	} `json:"ignition,omitzero"`
	KernelArguments struct {
		ShouldExist    []string `json:"should_exist,omitempty"`
		ShouldNotExist []string `json:"should_not_exist,omitempty"`
	} `json:"kernel_arguments,omitzero"`
	Passwd struct {
		Users  []passwdUser  `json:"users,omitempty"`
		Groups []passwdGroup `json:"groups,omitempty"`
	} `json:"passwd,omitzero"`
	Storage struct {
		Disks       []disk       `json:"disks,omitempty"`
		RAID        []raid       `json:"raid,omitempty"`
		LUKS        []luks       `json:"luks,omitempty"`
		Filesystems []filesystem `json:"filesystems,omitempty"`
		Directories []node       `json:"directories,omitempty"`
		Files       []node       `json:"files,omitempty"`
		Links       []node       `json:"links,omitempty"`
	} `json:"storage,omitzero"`
	Systemd struct {
		Units []unit `json:"units,omitempty"`
	} `json:"systemd,omitzero"`
}

type metadata struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

type resource struct {
	Source       string        `json:"source,omitempty"`
	Inline       *string       `json:"inline,omitempty"`
	Verification *verification `json:"verification,omitempty"`
}

type verification struct {
	Hash string `json:"hash"`
}

type owner struct {
	Name string `json:"name,omitempty"`
	ID   *int   `json:"id,omitempty"`
}

// node is a file, directory or link.
type node struct {
	Path      string     `json:"path"`
	Overwrite *bool      `json:"overwrite,omitempty"`
	Mode      *uint32    `json:"mode,omitempty"`
	User      *owner     `json:"user,omitempty"`
	Group     *owner     `json:"group,omitempty"`
	Contents  *resource  `json:"contents,omitempty"`
	Append    []resource `json:"append,omitempty"`
	Target    string     `json:"target,omitempty"`
	Hard      *bool      `json:"hard,omitempty"`
}

type passwdUser struct {
	Name         string   `json:"name"`
	PasswordHash string   `json:"password_hash,omitempty"`
	SSHKeys      []string `json:"ssh_authorized_keys,omitempty"`
	UID          *int     `json:"uid,omitempty"`
	Gecos        string   `json:"gecos,omitempty"`
	Home         string   `json:"home_dir,omitempty"`
	PrimaryGroup string   `json:"primary_group,omitempty"`
	Groups       []string `json:"groups,omitempty"`
	Shell        string   `json:"shell,omitempty"`
	System       *bool    `json:"system,omitempty"`
	ShouldExist  *bool    `json:"should_exist,omitempty"`
}

type passwdGroup struct {
	Name   string `json:"name"`
	GID    *int   `json:"gid,omitempty"`
	System *bool  `json:"system,omitempty"`
}

type unit struct {
	Name     string   `json:"name"`
	Enabled  *bool    `json:"enabled,omitempty"`
	Mask     *bool    `json:"mask,omitempty"`
	Contents *string  `json:"contents,omitempty"`
	DropIns  []dropIn `json:"dropins,omitempty"`
}

type dropIn struct {
	Name     string `json:"name"`
	Contents string `json:"contents"`
}

type disk struct {
	Device     string      `json:"device"`
	WipeTable  *bool       `json:"wipe_table,omitempty"`
	Partitions []partition `json:"partitions,omitempty"`
}

type partition struct {
	Label     string `json:"label,omitempty"`
	Number    int    `json:"number"`
	SizeMiB   *int   `json:"size_mib,omitempty"`
	StartMiB  *int   `json:"start_mib,omitempty"`
	TypeGUID  string `json:"type_guid,omitempty"`
	GUID      string `json:"guid,omitempty"`
	WipeEntry *bool  `json:"wipe_partition_entry,omitempty"`
}

type raid struct {
	Name    string   `json:"name"`
	Level   string   `json:"level"`
	Devices []string `json:"devices"`
	Spares  *int     `json:"spares,omitempty"`
}

type luks struct {
	Name       string    `json:"name"`
	Device     string    `json:"device"`
	KeyFile    *resource `json:"key_file,omitempty"`
	WipeVolume *bool     `json:"wipe_volume,omitempty"`
	Clevis     *clevis   `json:"clevis,omitempty"`
}

type clevis struct {
	Tang []tang `json:"tang,omitempty"`
	TPM2 *bool  `json:"tpm2,omitempty"`
}

type tang struct {
	URL        string `json:"url"`
	Thumbprint string `json:"thumbprint"`
}

type filesystem struct {
	Device         string   `json:"device"`
	Format         string   `json:"format"`
	Path           string   `json:"path,omitempty"`
	Label          string   `json:"label,omitempty"`
	UUID           string   `json:"uuid,omitempty"`
	Options        []string `json:"options,omitempty"`
	MountOptions   []string `json:"mount_options,omitempty"`
	WipeFilesystem *bool    `json:"wipe_filesystem,omitempty"`
	WithMountUnit  *bool    `json:"with_mount_unit,omitempty"`
}

// encode writes the document as JSON that is also YAML: what YAML forbids unescaped stands as \u escapes.
func (b *butane) encode() ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(b); err != nil {
		return nil, fmt.Errorf("write butane: %w", err)
	}
	text := buf.Bytes()
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		c, n := utf8.DecodeRune(text)
		if 0x7f <= c && c < 0xa0 || c == 0xfeff || c == 0xfffe || c == 0xffff {
			out = fmt.Appendf(out, `\u%04x`, c)
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out, nil
}

// translate turns Butane into Ignition. Raw keeps the openshift variant from being wrapped in a MachineConfig; without
// a FilesDir no local file can be read.
func translate(doc []byte) ([]byte, report.Report, error) {
	return butanelib.TranslateBytes(doc, common.TranslateBytesOptions{Raw: true})
}

// withoutModeGuesses drops Butane's guess that a mode whose decimal digits look octal was not meant: ours are typed.
func withoutModeGuesses(rpt report.Report) report.Report {
	var kept report.Report
	for _, e := range rpt.Entries {
		if !strings.Contains(e.Message, common.ErrDecimalMode.Error()) {
			kept.Entries = append(kept.Entries, e)
		}
	}
	return kept
}

func ref[T any](v T) *T { return &v }
