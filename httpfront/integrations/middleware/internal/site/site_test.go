package site

import "testing"

func TestForeignCookies(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "a=b": "a=b", "a=b;c": "a=b;c",
		"ropeline=x": "", "__Host-ropeline=x": "", "ropeline_shop=x": "", "__Host-ropeline_shop=x; ": "",
		"a=b; ropeline=x": "a=b", "ropeline=x; a=b": "a=b", "a=b;ropeline=x;c=d": "a=b; c=d", "ropeline=x; ropeline=y; a=b": "a=b",
		"ropeliner=x; a=ropeline=y": "ropeliner=x; a=ropeline=y", "ropeline; a": "a", "a=b; ropeline =x": "a=b",
	} {
		if got := ForeignCookies(list); got != want {
			t.Errorf("%q becomes %q, want %q", list, got, want)
		}
	}
}

func TestCommands(t *testing.T) {
	for value, want := range map[string]bool{"revoke": true, "Revoke": true, "a, revoke\t": true, "": false, "revoked": false, "re voke": false} {
		if got := Revokes(value); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	for name, want := range map[string]bool{"ropeline-command": true, "CF-Waiting-Room-Command": true, "Ropeline-Commands": false, "": false} {
		if got := IsCommand(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
