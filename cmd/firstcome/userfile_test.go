package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAFileOfUsersIsReadAsProgramsWriteIt: exactly the ids, whatever is beside them.
func TestAFileOfUsersIsReadAsProgramsWriteIt(t *testing.T) {
	for name, c := range map[string]struct {
		text, column string
		exact        bool
		want         string
	}{
		"one id a line":                  {text: "alice\n\nbob\n", want: "alice bob"},
		"Excel, CSV UTF-8":               {text: "\ufeff회원번호,이름\r\n00123,\"김, 민아\"\r\n00124,\"a \"\"b\"\"\"\r\n", want: "00123 00124"},
		"Excel, one column":              {text: "\ufeffuser_id\r\nalice\r\nbob", want: "alice bob"},
		"Excel, where commas are points": {text: "name;User ID\r\nMina;u-1\r\nJoon;u-2\r\n", want: "u-1 u-2"},
		"Excel, text between tabs":       {text: "아이디\t메모\r\nmina\t\"a, b\"\r\n", want: "mina"},
		"Sheets":                         {text: "Name,Member-ID\r\n\"Kim\nMina\",m1\r\nJoon,m2", want: "m1 m2"},
		"psql --csv":                     {text: "id,user_id,note\n1,u1,\n2,u2,\"x,y\"\n", want: "u1 u2"},
		"psql --csv --tuples-only":       {text: "1,u1\n2,u2\n", column: "2", want: "u1 u2"},
		"mysql --batch":                  {text: "mb_id\tname\nalice\tAlice \"A\" B\nbob\tNULL\n", want: "alice bob"},
		"mysql --batch, one column":      {text: "mb_id\nalice\n", want: "alice"},
		"another heading":                {text: "login,x\nalice,1\n", column: "login", want: "alice"},
		"a heading by its number":        {text: "x,user_id\n1,alice\n", column: "2", want: "alice"},
		"quoted":                         {text: "\"alice\"\n\"bob\"\n", want: "alice bob"},
		"ids of every kind":              {text: "a@b.kr\n+82101234\nauth0|5f7c\nA-1_2.3:4/5=\n한국\n", want: "a@b.kr +82101234 auth0|5f7c A-1_2.3:4/5= 한국"},
		"exact":                          {text: "user_id\n \"a\" ,b\r\n", exact: true, want: "user_id| \"a\" ,b"},
		"an export":                      {text: "campaign_id,number,user_id,code\nc,1,+82 10,x\nc,2,\"a,\"\"b\"\" \",x\nc,3,user_id,x\n", want: "+82 10|a,\"b\" |user_id"},
	} {
		t.Run(name, func(t *testing.T) {
			f := userFile{name: "f", column: c.column, exact: c.exact}
			got, err := f.read(strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			between := " "
			if strings.Contains(c.want, "|") && !strings.Contains(c.want, "auth0") {
				between = "|"
			}
			if diff := cmp.Diff(strings.Split(c.want, between), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestADoubtfulLineOfAFileOfUsersIsAMistake with its line: it would become a user.
func TestADoubtfulLineOfAFileOfUsersIsAMistake(t *testing.T) {
	for name, c := range map[string]struct{ text, column, want string }{
		"a blank at the end":      {text: "alice\nbob \n", want: "f line 2: "},
		"psql without --csv":      {text: " user_id \n---------\n alice\n(1 row)\n", want: `f line 2: "---------"`},
		"its last line":           {text: "alice\n(1 row)\n", want: `f line 2: "(1 row)"`},
		"NULL":                    {text: "user_id\nNULL\n", want: "f line 2: "},
		"an error of Excel":       {text: "user_id\n#N/A\n", want: "f line 2: "},
		"a shortened number":      {text: "user_id\n1.23457E+19\n", want: "a spreadsheet shortened"},
		"Excel's text":            {text: "number,user_id\n1,\"=\"\"00123\"\"\"\n", want: "f line 2: "},
		"a kept apostrophe":       {text: "'+82\n", want: "f line 1: "},
		"no id":                   {text: "user_id,name\n,Mina\n", want: `f line 2: "" is no user id`},
		"a comma without quotes":  {text: "alice\nbob,carol\n", want: "f line 2: has 2 columns"},
		"a quote without an end":  {text: "user_id,name\nalice,\"Mina\nbob,Joon\n", want: "f line 2: "},
		"a quote inside":          {text: "al\"ice\n", want: "f line 1: "},
		"columns without heading": {text: "alice,Mina\n", want: "f line 1: has 2 columns, and none is headed user_id"},
		"an unknown heading":      {text: "login\nu1\nu2\n", want: `f line 1: "login" looks like a heading`},
		"no such column":          {text: "login\nu1\n", column: "user", want: `f line 1: has no column "user"`},
		"two such columns":        {text: "a,a\n1,2\n", column: "a", want: "two columns"},
		"no such number":          {text: "a,b\n1,2\n", column: "3", want: "has no column 3"},
		"CP949":                   {text: "user_id\n\xb1\xe8\n", want: "save the file as CSV UTF-8"},
		"UTF-16":                  {text: "\xff\xfea\x00\n\x00", want: "UTF-16"},
		"nothing":                 {text: "user_id\n", want: "f has no user ids"},
		"many":                    {text: strings.Repeat("a b\n", 30), want: "f has 10 mistakes more"},
	} {
		t.Run(name, func(t *testing.T) {
			f := userFile{name: "f", column: c.column}
			got, err := f.read(strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
