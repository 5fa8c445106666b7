package rig

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// LuaModule is nginx's module for Lua, where Debian puts it.
const LuaModule = "/usr/lib/nginx/modules/ngx_http_lua_module.so"

// sources says who brings a program that is not there.
var sources = map[string]string{
	"nginx":        "Debian's package nginx",
	LuaModule:      "Debian's package libnginx-mod-http-lua",
	"haproxy":      "Debian's package haproxy",
	"redis-server": "Debian's package redis-server",
	"taskset":      "Debian's package util-linux",
	"caddy":        "make artifacts/caddy",
}

// Find returns where a program is, or a file that is given with its directory. It looks at the directories for
// servers as well, which are not in everybody's path.
func Find(name string) (string, error) {
	if filepath.IsAbs(name) && filepath.Ext(name) != "" { // a module, which nobody may execute
		if _, err := os.Stat(name); err != nil {
			return "", fmt.Errorf("%s is not there: %w", name, err)
		}
		return name, nil
	}
	path, err := exec.LookPath(name)
	if err == nil || errors.Is(err, exec.ErrDot) {
		return filepath.Abs(path)
	}
	if filepath.Base(name) == name {
		for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not there: %w", name, err)
}

// Missing returns those of names that are not on this machine, each with who brings it: "haproxy (Debian's package
// haproxy)".
func Missing(names ...string) (missing []string) {
	for _, name := range names {
		if _, err := Find(name); err == nil {
			continue
		}
		said := filepath.Base(name)
		if source := cmp.Or(sources[name], sources[said]); source != "" {
			said += " (" + source + ")"
		}
		missing = append(missing, said)
	}
	return missing
}

var version = regexp.MustCompile(`\d+\.\d+(\.\d+)?`)

// Version asks a program for its version, and where it does not say, the file for the module that it was built from: so it is
// with what go install has built. Empty: it is not there, or neither is known.
func Version(ctx context.Context, program string, args ...string) string {
	path, err := Find(program)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if v := version.FindString(string(out)); err == nil && v != "" {
		return v
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return ""
	}
	return version.FindString(info.Main.Version)
}
