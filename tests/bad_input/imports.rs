//! Workflows of Taverna with scripts are refused, and nothing is written.

use crate::refused;
use std::fs;

/// A Taverna workflow with a script, a tool, and a nested workflow with a script, one processor a line.
const FLOW: &str = r#"<workflow xmlns="http://taverna.sf.net/2008/xml/t2flow" version="1">
<dataflow id="top" role="top"><name>top</name><inputPorts/><outputPorts/>
<processors>
<processor><name>Split</name><inputPorts/><outputPorts/><activities><activity><class>net.sf.taverna.t2.activities.beanshell.BeanshellActivity</class><inputMap/><outputMap/><configBean><script>a = 1</script></configBean></activity></activities></processor>
<processor><name>segment</name><inputPorts/><outputPorts/><activities><activity><class>net.sf.taverna.t2.activities.externaltool.ExternalToolActivity</class><inputMap/><outputMap/><configBean><x xmlns=""><command>segment</command></x></configBean></activity></activities></processor>
<processor><name>inner</name><inputPorts/><outputPorts/><activities><activity><class>net.sf.taverna.t2.activities.dataflow.DataflowActivity</class><inputMap/><outputMap/><configBean><dataflow ref="nested"/></configBean></activity></activities></processor>
</processors><conditions/><datalinks/></dataflow>
<dataflow id="nested" role="nested"><name>nested</name><inputPorts/><outputPorts/>
<processors>
<processor><name>Merge</name><inputPorts/><outputPorts/><activities><activity><class>net.sf.taverna.t2.activities.beanshell.BeanshellActivity</class><inputMap/><outputMap/><configBean><script>b = 2</script></configBean></activity></activities></processor>
</processors><conditions/><datalinks/></dataflow>
</workflow>
"#;

#[test]
fn taverna_scripts_are_refused_with_their_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let import = ["workflow", "import", "flow.t2flow", "--out", "flow"];
    let allowed = "tools, text constants and nested workflows are allowed, and processors whose name --map gives an operation";
    fs::write(folder.path().join("flow.t2flow"), FLOW).expect("written");
    let listed =
        "processor \"Split\" (beanshell, line 4), \"inner-Merge\" (beanshell, line 10) are not allowed";
    refused(folder.path(), &import, &format!("flow.t2flow:4: {listed}; {allowed}"));
    // The line of the message is that of the first script.
    let flow = FLOW.replacen("beanshell.BeanshellActivity", "externaltool.ExternalToolActivity", 1);
    let flow = flow.replacen("<script>a = 1</script>", "<x xmlns=\"\"><command>split</command></x>", 1);
    fs::write(folder.path().join("flow.t2flow"), flow).expect("written");
    let listed = "processor \"inner-Merge\" (beanshell, line 10) is not allowed";
    refused(folder.path(), &import, &format!("flow.t2flow:10: {listed}; {allowed}"));
}
