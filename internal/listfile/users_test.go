package listfile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/internal/listfile"
)

// TestAFileOfUsersIsReadAsProgramsWriteIt wants exactly the ids, whatever other columns there are.
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
		"a heading that is named":        {text: "\ufeffemail\r\nkim@shop.kr\r\n", column: "email", want: "kim@shop.kr"},
		"userId":                         {text: "\ufeffuserId\r\nalice\r\nbob\r\n", want: "alice bob"},
		"회원번호":                           {text: "\ufeff회원번호\r\n1001\r\n1002\r\n", want: "1001 1002"},
		"ids that are hardly alike":      {text: "mina\njoon2\nkim@shop.kr\n한국\nMADRID\nvalid\n", want: "mina joon2 kim@shop.kr 한국 MADRID valid"},
		"an id like no other":            {text: "admin\nkim-1\nlee-2\nbob\n", want: "admin kim-1 lee-2 bob"},
		"quoted":                         {text: "\"alice\"\n\"bob\"\n", want: "alice bob"},
		"ids of every kind":              {text: "a@b.kr\n+82101234\nauth0|5f7c\nA-1_2.3:4/5=\n한국\n", want: "a@b.kr +82101234 auth0|5f7c A-1_2.3:4/5= 한국"},
		"exact":                          {text: "user_id\n \"a\" ,b\r\n", exact: true, want: "user_id| \"a\" ,b"},
		"an export":                      {text: "campaign_id,number,user_id,code\nc,1,+82 10,x\nc,2,\"a,\"\"b\"\" \",x\nc,3,user_id,x\n", want: "+82 10|a,\"b\" |user_id"},
	} {
		t.Run(name, func(t *testing.T) {
			f := listfile.Users{Name: "f", Column: c.column, Exact: c.exact}
			got, err := f.Read(strings.NewReader(c.text))
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

// TestADoubtfulLineOfAFileOfUsersIsAMistake wants a mistake with the line's number: otherwise the text would become a user.
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
		"columns without heading": {text: "alice,Mina\n", want: "f line 1: has 2 columns, and none has the heading user_id"},
		"an unknown heading":      {text: "shopper\nu1\nu2\n", want: `f line 1: "shopper" looks like a heading: if it is one, use --column "shopper"; if it is a user`},
		"of addresses":            {text: "shopper\nkim@shop.kr\nlee@shop.kr\n", want: `f line 1: "shopper" looks like a heading`},
		"of ids of two parts":     {text: "shopper\nauth0|ab\nauth0|cd\n", want: `f line 1: "shopper" looks like a heading`},
		"in Korean":               {text: "당첨자\nmina\njoon\n", want: `f line 1: "당첨자" looks like a heading`},
		"email":                   {text: "email\nkim@shop.kr\nlee@shop.kr\n", want: `f line 1: "email" looks like a heading`},
		"e-mail, from Windows":    {text: "\ufeffE-Mail\r\nkim@shop.kr\r\n", want: `f line 1: "E-Mail" looks like a heading`},
		"login":                   {text: "login\nalice\nbob\n", want: `f line 1: "login" looks like a heading`},
		"login, and no more":      {text: "login\n", want: `f line 1: "login" looks like a heading`},
		"login, of a column":      {text: "x\tlogin\n1\talice\n", column: "2", want: `f line 1: "login" looks like a heading`},
		"a name of two words":     {text: "kakaoTalkId\nalice\nbob\n", want: `f line 1: "kakaoTalkId" looks like a heading`},
		"another":                 {text: "shopper_no\nalice\nbob\n", want: `f line 1: "shopper_no" looks like a heading`},
		"이메일":                     {text: "이메일\n민아\n준\n", want: `f line 1: "이메일" looks like a heading`},
		"당첨자 연락처":                 {text: "당첨자 연락처\n민아\n준\n", want: `f line 1: "당첨자 연락처" looks like a heading`},
		"two files in one":        {text: "user_id\r\nalice\r\nuser_id\r\nbob\r\n", want: `f line 3: "user_id" is a heading`},
		"a title above":           {text: "winners\nuserId\nalice\n", want: `f line 2: "userId" is a heading`},
		"two with a named one":    {text: "login\nalice\nlogin\nbob\n", column: "login", want: `f line 3: "login" is a heading`},
		"no such column":          {text: "login\nu1\n", column: "user", want: `f line 1: has no column "user"`},
		"two such columns":        {text: "a,a\n1,2\n", column: "a", want: "two columns"},
		"no such number":          {text: "a,b\n1,2\n", column: "3", want: "has no column 3"},
		"CP949":                   {text: "user_id\n\xb1\xe8\n", want: "save the file as CSV UTF-8"},
		"UTF-16":                  {text: "\xff\xfea\x00\n\x00", want: "UTF-16"},
		"nothing":                 {text: "user_id\n", want: "f has no user ids"},
		"many":                    {text: strings.Repeat("a b\n", 30), want: "f has 10 mistakes more"},
	} {
		t.Run(name, func(t *testing.T) {
			f := listfile.Users{Name: "f", Column: c.column}
			got, err := f.Read(strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
