package cli

import (
	"path/filepath"
	"regexp"
)

// Version is what VersionOf makes of the version that the linker sets in package main.
var Version = "dev"

// ReleaseName is how clusterctl calls the directory of a release.
var ReleaseName = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// NextRelease is the release that a build without a tag leads to. Its version is NextRelease with -dev, so that it counts before
// the release and belongs to its series.
const NextRelease = "v0.1.0"

// VersionOf is the version of this program: the tag that it was linked with, or what git describe has made of it. A build
// without a tag knows its commit at most.
func VersionOf(linked string) string {
	switch {
	case ReleaseName.MatchString(linked):
		return linked
	case linked == "dev" || linked == "":
		return NextRelease + "-dev"
	}
	return NextRelease + "-dev+g" + notInVersion.ReplaceAllString(linked, "-")
}

var notInVersion = regexp.MustCompile(`[^0-9A-Za-z.-]`)

// ReleaseOf is the version that a repository is written for: clusterctl takes it from the name of the directory and
// refuses metadata of another series.
func ReleaseOf(dir, version string) string {
	if base := BaseOf(dir); ReleaseName.MatchString(base) {
		return base
	}
	return version
}

// BaseOf is the last part of the absolute path of a folder, also for "." and "..".
func BaseOf(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return filepath.Base(dir)
	}
	return filepath.Base(abs)
}
